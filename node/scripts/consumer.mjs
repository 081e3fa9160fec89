// Installs the packed tarballs into an empty project, as a user would, and uses them there: from
// ESM, from CommonJS and from TypeScript, which checks the types of this library, too.
// RUNTIME=path runs the ESM program with another runtime than this Node.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const tarballs = readdirSync('pack').filter((name) => name.endsWith('.tgz'));
if (tarballs.length < 2) throw new Error('nothing is packed: run scripts/pack.mjs first');
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

const PROGRAM = `
const locks = await connect('memory:');
const token = await locks.request('a', (lock) => lock.token);
const hold = await locks.acquire('a', { wait: 1000 });
const order = hold.token > token;
const refused = await locks.acquire('a', { wait: 0 }).catch((error) => error);
await hold.release();
await locks.close();
console.log(order, refused instanceof ContendedError, refused.code);
`;
const PRINTS = 'true true contended\n';

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
