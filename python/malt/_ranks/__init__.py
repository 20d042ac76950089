"""Starting ranks on this machine, and watching them."""
