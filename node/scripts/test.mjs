// Starts the stores' servers, runs the tests, and stops the servers whatever happens. Adds the
// counts as `PASSED FAILED SKIPPED` to the file $COUNTS, if that is set.
//
//   node test.mjs [OPTIONS OF node --test | FILES]
import { spawn } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRedis } from './redis.mjs';

const folder = mkdtempSync(join(tmpdir(), 'fencelock-node-'));
const leftOut = [];
let redis;
let status = 1;
try {
  const stores = ['memory:', `sqlite:${join(folder, 'locks.db')}`];
  redis = await startRedis(folder);
  stores.push(redis.url);
  if (process.env.FENCELOCK_TEST_ZK) stores.push(process.env.FENCELOCK_TEST_ZK);
  else leftOut.push('zk: FENCELOCK_TEST_ZK does not give the URL of a server');
  for (const line of leftOut) console.log(`left out: ${line}`);

  const options = process.argv.slice(2).filter((argument) => argument.startsWith('-'));
  let files = process.argv.slice(2).filter((argument) => !argument.startsWith('-'));
  if (files.length === 0) {
    files = ['build/test', '../examples/node/build/test'].flatMap((folder) =>
      readdirSync(folder)
        .filter((name) => name.endsWith('.test.js'))
        .map((name) => join(folder, name)),
    );
  }
  const tap = join(folder, 'results.tap');
  const run = spawn(
    process.execPath,
    [
      '--expose-gc',
      '--unhandled-rejections=strict',
      '--test',
      '--test-concurrency=2',
      '--test-reporter=spec',
      '--test-reporter-destination=stdout',
      '--test-reporter=tap',
      `--test-reporter-destination=${tap}`,
      ...options,
      ...files,
    ],
    {
      stdio: 'inherit',
      env: {
        ...process.env,
        FENCELOCK_TEST_STORES: stores.join(' '),
        NODE_OPTIONS: '--expose-gc',
      },
    },
  );
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => run.kill(signal));
  status = await new Promise((resolve) => run.on('exit', (code) => resolve(code ?? 1)));
  const results = existsSync(tap) ? readFileSync(tap, 'utf8') : '';
  const count = (what) => Number(results.match(new RegExp(`^# ${what} (\\d+)$`, 'm'))?.[1] ?? 0);
  const [passed, failed] = [count('pass'), count('fail') + count('cancelled')];
  const skipped = count('skipped') + count('todo') + leftOut.length;
  if (process.env.COUNTS) appendFileSync(process.env.COUNTS, `${passed} ${failed} ${skipped}\n`);
  if (passed === 0) {
    console.error('no test ran');
    status = 1;
  }
} finally {
  await redis?.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.exit(status);
