"""Labels from elsewhere: files of them read, checked, and put into the log as feedback."""
