// Fill the list of versions, and go to the same page of the one that is chosen, or to its first page.
// The list is a script beside the folders of all versions, so that it works from a disk too.
document.addEventListener("DOMContentLoaded", () => {
  for (const list of document.querySelectorAll("select.versions")) {
    for (const version of window.weftVersions ?? [list.dataset.version]) {
      const chosen = version === list.dataset.version;
      list.add(new Option(version, version, chosen, chosen));
    }
    list.addEventListener("change", async () => {
      const root = new URL(document.documentElement.dataset.content_root, location.href);
      const page = location.href.slice(root.href.length);
      const other = new URL(`../${list.value}/`, root);
      const found = await fetch(new URL(page, other), { method: "HEAD" }).catch(() => null);
      location.href = new URL(found?.ok ? page : "index.html", other);
    });
  }
});
