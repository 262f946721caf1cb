// Ranks the results of the site's search. conf.py registers this file, and Sphinx loads it after its own script.

// Words that readers search for but that the page's title does not contain.
const keywords = {
  "docs/attention": "multi-head mask transformer",
  "docs/compile_a_step": "inductor torch.compile fusion",
  "docs/compile_errors": "static assertion failed",
  "docs/determinism": "reproducible seed random bit",
  "docs/export": "onnx record aot inductor serve python",
  "docs/files_and_checkpoints": "save load model weights state dict safetensors pickle pt",
  "docs/installation": "install cmake conan pip download",
  "docs/limits": "windows macos platforms missing unsupported",
  "docs/mixed_precision": "amp autocast GradScaler bf16 fp16 half",
  "docs/own_data": "csv dataset dataloader loader batches table",
  "docs/own_model": "custom layer callback metric",
  "docs/recipes": "examples resume early stopping ema learning rate schedule",
  "docs/seeing_a_run": "tensorboard profiler progress logging",
  "docs/serve_a_model": "inference deploy http server",
  "docs/several_devices": "multiple gpus dataparallel ddp nccl distributed multi-gpu",
  "docs/ship_a_program": "docker container deploy bundle",
  "docs/simulated_gpus": "sconce-simgpu race sanitizer",
  "docs/speed": "fast benchmark performance",
  "docs/training": "fit trainer epochs early stopping lr_find",
  "docs/troubleshooting": "error crash out of memory slow",
  "docs/vision": "image pictures jpeg png resnet pretrained",
};

var Scorer = {
  // Guides rank above the reference, and the reference ranks above lessons and pages about the project.
  score: ([page, , , , score, , kind]) => {
    if (kind === "object") return score;
    if (page.startsWith("docs/") || page === "apps/train/README" || page === "reference/errors") return score + 20;
    return page.startsWith("reference/") ? score + 10 : score;
  },
  // A guide that contains every word has a score of at least 50, or 55 if each word is in a heading. A member with the
  // searched name ranks between them. Members of classes rank below reference pages, whose scores are at least 40.
  objNameMatch: 52,
  objPartialMatch: 25,
  objPrio: {},
  objPrioDefault: 0,
  title: 40,  // if the query is a heading
};

// Sphinx's own function expects dots between the parts of a name. Members of namespaces, whose names start with a
// lowercase letter, rank above members of classes.
const objectsOf = Search.performObjectSearch;
Search.performObjectSearch = (term, terms) =>
  objectsOf(term, terms).map(([page, name, anchor, about, score, ...more]) => {
    const [last, outer] = name.split("::").reverse();
    const isWhole = last.toLowerCase() === term && /^[a-z]/.test(outer) && !about.includes("parameter");
    return [page, name, anchor, about, isWhole ? Scorer.objNameMatch : score, ...more];
  });

// Sphinx's own function requires every word of the query, so it finds no page for a message that contains a path. This
// function scores a page by the words that it contains, and rare words count more.
Search.performTermsSearch = (words) => {
  const {docnames, titles, filenames, terms, titleterms} = Search._index;
  const stemmer = new Stemmer();
  const subjects = docnames.map((name, page) =>
    new Set(splitQuery(`${titles[page]} ${keywords[name] ?? ""}`.toLowerCase()).map((word) => stemmer.stemWord(word))));
  const inText = docnames.map(() => 0), inHeadings = [...inText], inSubject = [...inText];
  let all = 0;
  for (const word of words) {
    const whole = Object.hasOwn(terms, word) || Object.hasOwn(titleterms, word);
    const pagesOf = (index) =>
      Object.keys(index).filter((term) => whole ? term === word : term.includes(word)).flatMap((term) => index[term]);
    const headings = new Set(pagesOf(titleterms)), pages = new Set([...pagesOf(terms), ...headings]);
    subjects.forEach((subject, page) => subject.has(word) && pages.add(page));
    if (pages.size === 0) continue;
    const weight = Math.log(1 + docnames.length / pages.size);
    all += weight;
    for (const page of pages) {
      inText[page] += weight;
      if (headings.has(page)) inHeadings[page] += weight;
      if (subjects[page].has(word)) inSubject[page] += weight;
    }
  }
  return docnames.flatMap((name, page) => {
    const share = inText[page] / all;
    const isOfMessage = name === "reference/errors" && words.has("expect");  // sconce's messages contain "expected"
    const score = 30 * share ** 4 + (5 * inHeadings[page] + 10 * inSubject[page]) / all + (isOfMessage ? 10 : 0);
    return share > 0.5 ? [[name, titles[page], "", null, score, filenames[page], "text"]] : [];
  });
};
