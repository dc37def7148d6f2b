"""Images that users attach: scaled down, stored, shown, and sent to models."""
