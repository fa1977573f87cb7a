"""The terminal user interface: screens and widgets over one session. Only this package knows Textual."""
