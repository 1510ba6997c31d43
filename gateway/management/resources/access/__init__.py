"""Resources about who may do what: users, permissions, limits of users, logins."""
