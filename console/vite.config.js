// Builds the console into `dist/`: seven files under fixed names, compressed, and the digest of each. The page names its script and its
// style by their digests, and the style its fonts, so that browsers may keep them for ever. No file says when or where it was built: two
// builds are the same.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';

// The tests build elsewhere, and compare.
const OUT = process.env.CONSOLE_OUT ? pathToFileURL(`${process.env.CONSOLE_OUT}/`) : new URL('dist/', import.meta.url);
// Fonts of the packages, by the names that they have here.
const FONTS = { 'inter-latin-wght-normal.woff2': 'inter.woff2', 'jetbrains-mono-latin-wght-normal.woff2': 'mono.woff2' };
const digest = (text) => createHash('sha256').update(text).digest('hex').slice(0, 16);

// The licence of the fonts goes with them.
const LICENCES = ['inter', 'jetbrains-mono'].map((name) => readFileSync(new URL(`node_modules/@fontsource-variable/${name}/LICENSE`, import.meta.url), 'utf8').replaceAll('\r\n', '\n'));

/** Takes what was built out of memory, so that nothing but the compressed files is ever in `dist/`. */
function packed() {
  return {
    name: 'packed',
    enforce: 'post',
    generateBundle(_, bundle) {
      const files = { 'icon.svg': readFileSync(new URL('src/icon.svg', import.meta.url), 'utf8') };
      files['fonts.txt'] = LICENCES.join('\n\n');
      for (const [name, file] of Object.entries(bundle)) {
        files[name] = file.code ?? (name.endsWith('.woff2') ? Buffer.from(file.source) : String(file.source));
        delete bundle[name];
      }
      // The style first: its own digest is that of what it says of its fonts.
      const named = (name) => `${name}?${digest(files[name])}`;
      files['app.css'] = files['app.css'].replaceAll(/(?:\.\/)?((?:inter|mono)\.woff2)/g, (_, name) => named(name));
      files['index.html'] = files['index.html'].replaceAll(/(?:\.\/)?(app\.(?:js|css)|icon\.svg)(?=")/g, (_, name) => named(name));
      rmSync(OUT, { recursive: true, force: true });
      mkdirSync(OUT);
      const names = Object.keys(files).sort();
      for (const name of names) writeFileSync(new URL(`${name}.gz`, OUT), gzipSync(files[name], { level: 9 }));
      writeFileSync(new URL('digests.txt', OUT), names.map((name) => `${name} ${digest(files[name])}\n`).join(''));
    },
  };
}

export default {
  root: new URL('src', import.meta.url).pathname,
  base: './',
  plugins: [packed()],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    outDir: '../dist',
    emptyOutDir: false,
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: false,
    rollupOptions: { output: { entryFileNames: 'app.js', assetFileNames: ({ names: [name = ''] }) => FONTS[name] ?? 'app[extname]', codeSplitting: false } },
  },
  test: { root: new URL('.', import.meta.url).pathname, include: ['test/**/*.test.ts'] },
};
