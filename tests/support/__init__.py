"""What the tests share: a scripted upstream and a real proxy process."""
