// Under `archc explore --serve`: look whether a spec changed, and load the page anew. A spec that does not hold leaves
// the page as it is, and says why.

const LOOK_EVERY = 700;

function watchSpecs() {
  /** @type {number|null} */
  let known = null;
  const look = async () => {
    try {
      const { version, problem } = await (await fetch("/state", { cache: "no-store" })).json();
      showProblem(problem);
      if (known !== null && version !== known && !problem) location.reload();
      else if (known === null) known = version;
    } catch {
      showProblem("The server is gone. Start `archc explore --serve` again.");
    }
    setTimeout(look, LOOK_EVERY);
  };
  look();
}

/** @param {string|null} problem */
function showProblem(problem) {
  const banner = byId("problem");
  banner.hidden = !problem;
  if (banner.textContent !== (problem || "")) banner.textContent = problem || "";
}
