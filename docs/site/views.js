// Finds visual defects of a page. views.py calls defects() in a browser.

const excerpt = (text) => text.trim().replace(/\s+/g, " ").slice(0, 60);

// Finds elements that are wider than the window.
function wideParts() {
  const width = document.documentElement.clientWidth;
  const found = [];
  if (document.documentElement.scrollWidth > width) {
    found.push(`the page is ${document.documentElement.scrollWidth} pixels wide`);
  }
  for (const image of document.querySelectorAll("article img")) {
    const box = image.getBoundingClientRect();
    if (image.naturalWidth === 0) found.push(`${image.src} is not shown`);
    if (box.right > width || box.left < 0) found.push(`${image.src} does not fit`);
  }
  return found;
}

function cutOffPrograms() {
  return [...document.querySelectorAll("article pre")]
    .filter((program) => program.scrollWidth > program.clientWidth)
    .map((program) => `a program is cut off: ${excerpt(program.textContent)}`);
}

// Returns the part of a rectangle that is not hidden by the element or its parents.
function visiblePart(box, element) {
  const part = {left: box.left, right: box.right, top: box.top, bottom: box.bottom};
  for (let outer = element; outer && outer !== document.body; outer = outer.parentElement) {
    if (getComputedStyle(outer).overflowX === "visible") continue;
    const clip = outer.getBoundingClientRect();
    part.left = Math.max(part.left, clip.left);
    part.right = Math.min(part.right, clip.right);
    part.top = Math.max(part.top, clip.top);
    part.bottom = Math.min(part.bottom, clip.bottom);
  }
  return part;
}

// Returns the visible rectangles of text, from top to bottom.
function piecesOfText() {
  const pieces = [], range = document.createRange();
  const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
    const element = node.parentElement;
    const isShown = element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true});
    if (!node.data.trim() || element.closest("script, style, noscript, svg") || !isShown) continue;
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      const part = visiblePart(box, element);
      if (part.right - part.left > 1 && part.bottom - part.top > 1) pieces.push({...part, node, element});
    }
  }
  return pieces.sort((a, b) => a.top - b.top);
}

// Returns the fixed or sticky part of the page that contains the element. It may overlap the rest of the page.
function layerOf(element) {
  while (element && !["fixed", "sticky"].includes(getComputedStyle(element).position)) element = element.parentElement;
  return element;
}

function textOverText(pieces) {
  const found = [], least = 4;  // pixels
  pieces.forEach((a, at) => {
    for (let next = at + 1; next < pieces.length && pieces[next].top < a.bottom - least; ++next) {
      const b = pieces[next];
      const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const height = Math.min(a.bottom, b.bottom) - b.top;
      if (a.node === b.node || width < least || height < least || layerOf(a.element) !== layerOf(b.element)) continue;
      found.push(`"${excerpt(a.node.data)}" overlaps "${excerpt(b.node.data)}"`);
    }
  });
  return found;
}

const channels = (color) => color.match(/[\d.]+/g).map(Number);

// Returns the relative luminance according to WCAG 2.
function luminance(color) {
  const [red, green, blue] = channels(color).map((value) =>
    value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function backgroundOf(element) {
  for (; element; element = element.parentElement) {
    const color = getComputedStyle(element).backgroundColor;
    if (color.startsWith("rgb") && (channels(color)[3] ?? 1) > 0.5) return color;
  }
  return "rgb(255, 255, 255)";
}

// Finds text with a contrast below 3, which WCAG 2 requires for large text.
function paleText(pieces) {
  const found = new Set();
  for (const {node, element} of pieces) {
    const color = getComputedStyle(element).color;
    if (!color.startsWith("rgb")) continue;
    const [dark, light] = [luminance(color), luminance(backgroundOf(element))].sort((a, b) => a - b);
    if ((light + 0.05) / (dark + 0.05) < 3) found.add(`"${excerpt(node.data)}" is hard to read: ${color}`);
  }
  return [...found];
}

function defects(isWidest) {
  const pieces = piecesOfText();
  return [...wideParts(), ...(isWidest ? cutOffPrograms() : []), ...textOverText(pieces), ...paleText(pieces)];
}
