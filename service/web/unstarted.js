// Says that the page's modules cannot be loaded, or are of two versions, where that is so: no module itself, it is
// there before them.
{
  const verdict = document.getElementById("verdict");
  const asking = verdict.textContent;
  const here = new URL(".", location.href).href;
  const why =
    location.protocol === "file:"
      ? "a browser loads no scripts from the files of a disk. A file server has to serve them."
      : "one of its scripts cannot be loaded, or is of another version. Load it again.";

  // What has begun knows better itself, and a picture that is not there is no reason.
  const hear = ({ target, filename = target.src }) => {
    if (verdict.textContent !== asking || !(target === window || target.localName === "script")) return;
    if (filename && !filename.startsWith(here)) return; // of what the browser brings along
    verdict.className = "verdict bad";
    verdict.textContent = `This page cannot be started: ${why}`;
  };
  addEventListener("error", hear, true);
}
