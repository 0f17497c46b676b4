// An image that cannot be fetched is named as such, and can be tried again.

function watch(img) {
  const fail = () => {
    const again = document.createElement("button");
    again.type = "button";
    again.className = "link";
    again.textContent = "Try again";
    const note = document.createElement("span");
    note.className = "problem";
    note.append("The image could not be loaded. ", again);
    again.addEventListener("click", () => {
      const fresh = img.cloneNode();
      watch(fresh);
      note.replaceWith(fresh);
    });
    img.replaceWith(note);
  };
  if (img.complete && !img.naturalWidth) fail();
  else img.addEventListener("error", fail);
}

/** Watch the images of documents, also before they are shown. */
export function watchImages(root) {
  for (const img of root.querySelectorAll(".image img")) watch(img);
}

watchImages(document);
