// Applies the chosen theme before the first paint. A classic script, because modules run after it.
try {
  const theme = localStorage.getItem("gateway.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Without storage the system's preference applies.
}
