"""What the tests of a library import in place of the module that they are about."""
