"""Drop-in clients and wrappers for model libraries, one file each, imported on use."""
