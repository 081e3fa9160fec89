// Installs the packed tarballs into an empty project, as a user would, and uses them there: from
// ESM, from CommonJS and from TypeScript, which checks the types of this library, too.
// RUNTIME=path runs the ESM program with another runtime than this Node, and STORES='URL…' on other
// stores than the one in memory.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { platform } from './platform.mjs';

const stores = (process.env.STORES ?? 'memory:').split(' ');
// The package, and that of this platform.
const packed = readdirSync('pack').filter((name) => name.endsWith('.tgz'));
const tarballs = packed.filter(
  (name) => /^fencelock-[0-9]/.test(name) || name.startsWith(`fencelock-${platform()}-`),
);
if (tarballs.length !== 2) {
  throw new Error(`pack/ does not have the package and that of ${platform()}: run scripts/package`);
}
const project = mkdtempSync(join(tmpdir(), 'fencelock-consumer-'));
const run = (program, ...args) =>
  execFileSync(program, args, {
    cwd: project,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 120_000,
    env: { ...process.env, npm_config_loglevel: 'error' },
  });
const expect = (what, found, wanted) => {
  if (found !== wanted) throw new Error(`${what} printed ${JSON.stringify(found)}`);
  console.log(`${what}: works`);
};

// What a user does most, on each store; with nothing left to do, the program ends by itself.
const PROGRAM = `
for (const url of ${JSON.stringify(stores)}) {
  const locks = await connect(url);
  const name = 'consumer/' + Math.random();
  const token = await locks.request(name, async (lock) => {
    const nested = await locks.request(name, { ifAvailable: true }, (inner) => inner);
    if (nested !== null) throw new Error('re-entered');
    return lock.token;
  });
  const hold = await locks.acquire(name, { wait: 1000 });
  if (!(hold.token > token)) throw new Error('the token did not rise');
  const refused = await locks.acquire(name, { wait: 0 }).catch((error) => error);
  if (!(refused instanceof ContendedError) || refused.code !== 'contended') throw refused;
  const controller = new AbortController();
  const aborted = locks.acquire(name, { signal: controller.signal }).catch((error) => error);
  const waits = Array.from({ length: 100 }, () => locks.request(name, (lock) => lock.token));
  await locks.ping();
  controller.abort('enough');
  if ((await aborted) !== 'enough') throw new Error('not aborted');
  await hold.release();
  const tokens = await Promise.all(waits);
  if (tokens.some((one, at) => at > 0 && one <= tokens[at - 1])) throw new Error('order');
  const short = await locks.acquire(name, { lease: 200 });
  if ((await short.lost) !== 'ended' || !short.signal.aborted) throw new Error('not told');
  console.log(url, 'works');
}
`;
const PRINTS = stores.map((url) => `${url} works\n`).join('');

try {
  writeFileSync(join(project, 'package.json'), '{ "name": "consumer", "private": true }');
  const files = tarballs.map((name) => resolve('pack', name));
  // Without the network: the other platforms' packages are optional.
  run('npm', 'install', '--offline', '--no-audit', '--no-fund', '--no-package-lock', ...files);

  writeFileSync(
    join(project, 'esm.mjs'),
    `import { connect, ContendedError } from 'fencelock';${PROGRAM}`,
  );
  const runtime = process.env.RUNTIME?.split(' ') ?? [process.execPath];
  expect(`ESM (${runtime[0]})`, run(...runtime, 'esm.mjs'), PRINTS);
  if (process.env.RUNTIME === undefined) {
    writeFileSync(
      join(project, 'commonjs.cjs'),
      `const { connect, ContendedError } = require('fencelock');(async () => {${PROGRAM}})();`,
    );
    expect('CommonJS', run(process.execPath, 'commonjs.cjs'), PRINTS);

    writeFileSync(
      join(project, 'typed.mts'),
      `import { connect, ContendedError, type Hold, type Lock, type LockManager } from 'fencelock';
const locks: LockManager = await connect('memory:', { lease: 10_000 });
const token: bigint = await locks.request('a', async (lock: Lock) => lock.token);
const maybe: string = await locks.request('a', { ifAvailable: true }, (lock) => {
  // @ts-expect-error: it may be null
  lock.token;
  return lock?.name ?? 'none';
});
{
  await using hold = await locks.acquire('a', { wait: 1000 });
  const same: Hold = hold;
  if (same.token <= token || maybe !== 'a') throw new Error('order');
}
const none: Hold | null = await locks.acquire('a', { ifAvailable: true });
await none?.release();
const perhaps: boolean = maybe === 'a';
const either: Hold | null = await locks.acquire('b', { ifAvailable: perhaps, wait: undefined });
await either?.release();
// @ts-expect-error: no such mode
await locks.request('a', { mode: 'both' }, () => {}).catch((error: unknown) => {
  if (!(error instanceof TypeError) || error instanceof ContendedError) throw error;
});
await locks.close();
console.log('typed');
`,
    );
    writeFileSync(
      join(project, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: {
          target: 'ES2022',
          module: 'Node20',
          lib: ['ES2022', 'ESNext.Disposable'],
          strict: true,
          skipLibCheck: false,
          types: ['node'],
          typeRoots: [resolve('node_modules/@types')],
        },
        files: ['typed.mts'],
      }),
    );
    run(process.execPath, resolve('node_modules/typescript/bin/tsc'), '-p', '.');
    expect('TypeScript', run(process.execPath, 'typed.mjs'), 'typed\n');
  }
} finally {
  rmSync(project, { recursive: true, force: true });
}
