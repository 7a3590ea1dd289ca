"""The explorer: a bundle served as a JSON API and a page. `cod3s.web.app.create_app` makes the application."""
