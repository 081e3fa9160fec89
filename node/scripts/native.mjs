// Puts the built library where the loader looks, and writes the loader and its types, or with
// --check says whether those that are checked in are what would be written.
//
//   node native.mjs FOLDER-OF-THE-LIBRARY FOLDER-OF-THE-TYPES [--check]
import { copyFile, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateTypeDef, readNapiConfig, writeJsBinding } from '@napi-rs/cli';
import { platform } from './platform.mjs';

const [built, typeDefDir, check] = process.argv.slice(2);
const { binaryName } = await readNapiConfig('package.json');
const { name, version } = JSON.parse(await readFile('package.json', 'utf8'));

const library = { linux: 'libfencelock_node.so', darwin: 'libfencelock_node.dylib' };
const from = join(built, library[process.platform] ?? 'fencelock_node.dll');
const to = join('native', `${binaryName}.${platform()}.node`);
// A new file in its place: the old one may be mapped by a process that runs.
await copyFile(from, `${to}.new`);
await rename(`${to}.new`, to);

const outputDir = check ? await mkdtemp(join(tmpdir(), 'fencelock-native-')) : 'native';
try {
  const { dts, exports } = await generateTypeDef({ typeDefDir, cwd: process.cwd() });
  await writeFile(join(outputDir, 'index.d.ts'), dts);
  await writeJsBinding({
    platform: true,
    idents: exports,
    format: 'commonjs',
    binaryName,
    packageName: name,
    version,
    outputDir,
  });
  for (const file of check ? ['index.js', 'index.d.ts'] : []) {
    const [fresh, kept] = await Promise.all(
      [outputDir, 'native'].map((folder) => readFile(join(folder, file), 'utf8')),
    );
    if (fresh !== kept) {
      console.error(`node/native/${file} is not what node/scripts/build writes: run it`);
      process.exitCode = 1;
    }
  }
} finally {
  if (check) await rm(outputDir, { recursive: true });
}
