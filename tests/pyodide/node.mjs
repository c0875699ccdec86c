// Runs checks.py in Pyodide under Node: node node.mjs PYODIDE_FOLDER SITE_ZIP CHECKS
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

const [folder, site, checks] = process.argv.slice(2).map((path) => resolve(path));
const { loadPyodide } = await import(`${folder}/pyodide.mjs`);
try {
  const pyodide = await loadPyodide({ indexURL: `${folder}/` });
  pyodide.unpackArchive(new Uint8Array(readFileSync(site)), "zip", { extractDir: "/lib/python3.14/site-packages" });
  await pyodide.runPythonAsync(`${readFileSync(checks, "utf-8")}\nawait main()`);
} catch (error) {
  // Not thrown: Node would print the source of pyodide.asm.mjs, which is one line of a megabyte.
  console.error(String(error.message ?? error).slice(-6000));
  process.exit(1);
}
