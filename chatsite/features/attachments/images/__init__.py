"""Images that people attach: made smaller, kept beside their message, shown, and sent
to models that take them."""
