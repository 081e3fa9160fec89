// Packs what would be published into pack/, and checks it: the contents, and that both kinds of
// module find their code and types (attw, publint). Beside it go the packages of the platforms
// whose libraries are given, or of this one, with the library that scripts/build left in native/.
//
//   node pack.mjs [RUST'S TARGET=LIBRARY…]
import { execFileSync } from 'node:child_process';
import { copyFile, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseTriple, readNapiConfig } from '@napi-rs/cli';
import { platform as here } from './platform.mjs';

const OUT = 'pack';
const manifest = JSON.parse(await readFile('package.json', 'utf8'));
const { binaryName, targets } = await readNapiConfig('package.json');
const licences = ['LICENSE-APACHE', 'LICENSE-MIT'];
const given = new Map(process.argv.slice(2).map((argument) => argument.split('=', 2)));
for (const triple of given.keys()) {
  if (!targets.some((target) => target.triple === triple)) throw new Error(`no target ${triple}`);
}
await rm(OUT, { recursive: true, force: true });

/** Runs npm or a tool of ours; gives what it printed. */
function run(program, ...args) {
  const env = { ...process.env, npm_config_loglevel: 'error', NO_COLOR: '1' };
  return execFileSync(program, args, {
    encoding: 'utf8',
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/**
 * What machine and C library a shared library is for, as its headers say: a package whose library is
 * another platform's would be installed, and not load.
 */
function madeFor(library) {
  const machines = { 'Advanced Micro Devices X86-64': 'x64', AArch64: 'arm64' };
  const machine = run('readelf', '--file-header', library).match(/Machine: +(.+)/)?.[1] ?? '';
  const needed = run('readelf', '--dynamic', '--wide', library);
  const abi = /NEEDED.*\[(libc\.so|libc\.musl-.*)\]/.test(needed) ? 'musl' : 'gnu';
  return `linux-${machines[machine]}-${abi}`;
}

/** Packs a folder; checks that it has these files and no others. */
function pack(folder, wanted) {
  const [packed] = JSON.parse(
    run('npm', 'pack', '--json', '--pack-destination', OUT, `./${folder}`),
  );
  const found = packed.files.map(({ path }) => path).sort();
  const missing = wanted.filter((path) => !found.includes(path));
  const surplus = found.filter((path) => !wanted.includes(path));
  if (missing.length || surplus.length) {
    throw new Error(`${packed.filename}: missing [${missing}], surplus [${surplus}]`);
  }
  console.log(`${packed.filename}: ${found.length} files, ${packed.size} bytes`);
  return join(OUT, packed.filename);
}

// A package for each platform, which npm installs where its `os`, `cpu` and `libc` fit.
const optionalDependencies = {};
for (const target of targets) {
  const { platformArchABI: platform, platform: os, arch: cpu, abi } = parseTriple(target.triple);
  const name = `${manifest.name}-${platform}`;
  optionalDependencies[name] = manifest.version;
  const library = `${binaryName}.${platform}.node`;
  const own = given.size === 0 && platform === here();
  const built = own ? join('native', library) : given.get(target.triple);
  if (built === undefined) continue;
  const folder = join(OUT, 'stage', platform);
  await mkdir(folder, { recursive: true });
  await copyFile(built, join(folder, library));
  // Debug information is for whoever builds it. What is given has none.
  if (own) run('strip', '--strip-unneeded', join(folder, library));
  if (madeFor(join(folder, library)) !== platform) {
    throw new Error(`${built} is for ${madeFor(built)}, not ${platform}`);
  }
  const { license, repository, engines } = manifest;
  const libc = { gnu: ['glibc'], musl: ['musl'] }[abi];
  await writeFile(
    join(folder, 'package.json'),
    JSON.stringify(
      {
        name,
        version: manifest.version,
        description: `The native library of ${manifest.name} for ${platform}`,
        license,
        repository,
        engines,
        os: [os],
        cpu: [cpu],
        ...(libc && { libc }),
        main: library,
        files: [library, ...licences],
      },
      null,
      2,
    ),
  );
  await writeFile(
    join(folder, 'README.md'),
    `The native library of ${manifest.name} for ${platform}.\n`,
  );
  for (const licence of licences) await copyFile(join('..', licence), join(folder, licence));
  pack(folder, ['package.json', 'README.md', ...licences, library]);
}

const folder = join(OUT, 'stage', 'main');
await mkdir(join(folder, 'native'), { recursive: true });
await cp('dist', join(folder, 'dist'), { recursive: true });
for (const file of ['README.md', 'native/index.js', 'native/index.d.ts']) {
  await copyFile(file, join(folder, file));
}
for (const licence of licences) await copyFile(join('..', licence), join(folder, licence));
const { devDependencies: _, scripts: __, ...published } = manifest;
await writeFile(
  join(folder, 'package.json'),
  JSON.stringify({ ...published, optionalDependencies }, null, 2),
);
const modules = (await readdir('lib')).flatMap((name) => {
  const [stem, kind] = [
    name.slice(0, name.lastIndexOf('.')),
    name.slice(name.lastIndexOf('.') + 1),
  ];
  const [js, types] = kind === 'mts' ? ['mjs', 'd.mts'] : ['js', 'd.ts'];
  return [`dist/${stem}.${js}`, `dist/${stem}.${types}`];
});
const tarball = pack(folder, [
  'package.json',
  'README.md',
  'native/index.js',
  'native/index.d.ts',
  ...licences,
  ...modules,
]);

// Node resolves by `exports` alone; node10 finds the same files by `main` and `types`.
console.log(
  run('node_modules/.bin/attw', tarball, '--profile', 'strict', '--no-emoji', '--format', 'ascii'),
);
console.log(run('node_modules/.bin/publint', 'run', tarball, '--strict'));
await rm(join(OUT, 'stage'), { recursive: true });
