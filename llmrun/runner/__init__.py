"""One child process per loaded model. `frames` is all that the daemon may import of it."""
