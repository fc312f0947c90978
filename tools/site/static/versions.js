// The theme's list of versions takes addresses as relative to the page. Ours are relative to the
// folder of the version, so that the site may lie anywhere. A page that the other version has not
// leads to its first page.
document.addEventListener(
  "click",
  (event) => {
    const link = event.target.closest("a[data-version]");
    if (!link) return;
    event.preventDefault();
    event.stopPropagation();
    const root = new URL(document.documentElement.dataset.content_root, location.href);
    const page = new URL(link.getAttribute("href"), root);
    const first = new URL(`../${link.dataset.version}/index.html`, root);
    fetch(page, { method: "HEAD" }).then((found) => {
      location.href = found.ok ? page : first;
    });
  },
  true,
);
