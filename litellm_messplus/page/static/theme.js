// Light or dark: what the system prefers, unless the reader has chosen. Runs before the first paint.
(() => {
  const KEY = "messplus-theme";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");

  function chosen() {
    try {
      return localStorage.getItem(KEY);
    } catch { // storage is switched off: the choice lasts as long as the page
      return null;
    }
  }

  function keep(theme) {
    try {
      localStorage.setItem(KEY, theme);
    } catch {} // as above
  }

  function show(theme) {
    root.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) {
      button.textContent = theme === "dark" ? "Light theme" : "Dark theme";
    }
  }

  const now = () => chosen() ?? (system.matches ? "dark" : "light");
  show(now());
  system.addEventListener("change", () => show(now()));
  document.addEventListener("DOMContentLoaded", () => {
    show(now());
    document.getElementById("theme").addEventListener("click", () => {
      const theme = root.dataset.theme === "dark" ? "light" : "dark";
      keep(theme);
      show(theme);
    });
  });
})();
