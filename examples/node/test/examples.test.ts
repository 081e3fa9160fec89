import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { paused, sale } from '../src/flash-sale.js';
import { Ledger } from '../src/ledger.js';
import { ask, run } from '../src/price-list.js';

const URLS = (process.env.FENCELOCK_TEST_STORES ?? 'memory:').split(' ').filter(Boolean);

for (const url of URLS) {
  const scheme = url.slice(0, url.indexOf(':'));

  describe(`flash sale (${scheme})`, () => {
    test('with a lock, no more is sold than there is', async () => {
      assert.deepEqual(await sale(url, true), { told: 40, left: 0 });
    });

    test('a paused holder is refused by its token', async () => {
      assert.match(await paused(url), /^lost \(ended\): token \d+ is refused: \d+ wrote already$/);
    });
  });

  describe(`the price list (${scheme})`, () => {
    test('a late reader and a late writer are refused', async (context) => {
      if (scheme === 'zk') return context.skip('it has no shared locks');
      const { late } = await run(url, `prices-${process.pid}`);
      assert.deepEqual(late, ['a late read', 'a late write']);
    });

    test('a service that bears two calls at a time has no more', async (context) => {
      if (scheme === 'zk') return context.skip('it has no semaphores');
      const most = await ask(url, `service-${process.pid}`);
      assert.ok(most === 1 || most === 2, `${most}`);
    });
  });

  describe(`the shop (${scheme})`, () => {
    test('fifty customers, twenty coupons; it ends on SIGTERM', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'shop-'));
      const program = join(__dirname, '../src/shop.js');
      const server = spawn(process.execPath, [program, url, '0', folder]);
      try {
        server.stderr.pipe(process.stderr);
        const address = await new Promise<string>((resolve, reject) => {
          server.stdout.once('data', (data) => resolve(`${data}`.trim()));
          server.once('exit', (code) => reject(new Error(`the shop ended with ${code}`)));
        });
        const answers = await Promise.all(
          Array.from({ length: 50 }, (_, i) => fetch(`${address}/buy/${i}`, { method: 'POST' })),
        );
        const count = (status: number) => answers.filter((a) => a.status === status).length;
        assert.deepEqual([count(200), count(409)], [20, 30]);
        const ledger = new Ledger(folder);
        const { left } = await ledger.read();
        assert.deepEqual([left, new Set(await ledger.buyers()).size], [0, 20]);
        const ended = new Promise((resolve) => {
          server.removeAllListeners('exit').once('exit', (code, signal) => resolve([code, signal]));
        });
        server.kill('SIGTERM');
        assert.deepEqual(await ended, [null, 'SIGTERM']);
      } finally {
        server.kill('SIGKILL');
        await rm(folder, { recursive: true });
      }
    });
  });
}

test('without a lock, more is sold than there is', async () => {
  // It would be luck if it were not; the sale is repeated until it happens.
  for (let i = 0; i < 20; i++) {
    const { told } = await sale('memory:flash-sale-unlocked', false);
    if (told > 40) return;
  }
  assert.fail('never oversold');
});
