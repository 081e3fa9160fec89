// Dropped guards are released, as the last resort; and what is released leaves nothing behind.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from 'fencelock';
import { eventually, onEachStore, turn, unique } from './support.js';

const collect = () => {
  if (globalThis.gc === undefined) throw new Error('run with --expose-gc');
  globalThis.gc();
};

onEachStore('garbage', (store) => {
  test('a dropped guard is released, with a warning', async () => {
    const name = unique();
    const warnings: (Error & { code?: string })[] = [];
    const warned = (warning: Error) => void warnings.push(warning);
    process.on('warning', warned);
    await (async () => {
      await store.locks.acquire(name);
    })();
    await eventually('it is released', async () => {
      collect();
      await turn();
      const hold = await store.locks.acquire(name, { ifAvailable: true });
      await hold?.release();
      return hold !== null;
    });
    await eventually('the warning', () => warnings.length > 0);
    process.off('warning', warned);
    assert.equal(warnings.length, 1);
    assert.equal(warnings[0]?.name, 'FencelockWarning');
    assert.equal(warnings[0]?.code, 'FENCELOCK_DROPPED');
    assert.match(warnings[0]?.message ?? '', new RegExp(name));
  });

  test('a guard whose signal is watched is told of its loss before it is collected', async () => {
    const name = unique();
    const told = (async () => {
      const hold = await store.locks.acquire(name, { lease: 300 });
      return hold.lost;
    })();
    for (let i = 0; i < 3; i++) {
      await turn();
      collect();
    }
    // Collected first, it is released, and never lost: then nothing is to be told.
    const released = eventually('it is free', async () => !(await store.locks.isLocked(name)));
    await Promise.race([told, released]);
    await released;
  });

  test('a dropped client closes, and a live hold keeps it', async () => {
    const name = unique();
    const hold = await (await connect(store.url)).acquire(name);
    for (let i = 0; i < 5; i++) {
      collect();
      await turn();
    }
    assert.ok(hold.isValid);
    await hold.release();
  });
});

// A small dose; scripts/deep takes a million.
const ACQUISITIONS = Number(process.env.ACQUISITIONS ?? 6_000);
const ROUNDS = 6;

onEachStore(
  'leaks',
  (store) => {
    test(`${ACQUISITIONS} acquisitions leave nothing behind`, async () => {
      const names = Array.from({ length: 16 }, () => unique('leak'));
      const controller = new AbortController();
      const some = async (count: number) => {
        for (let i = 0; i < count; i += 4) {
          const name = names[i % 16] ?? '';
          const hold = await store.locks.acquire(name, { signal: controller.signal });
          const waiting = store.locks.acquire(name, { signal: controller.signal });
          await hold.release();
          await (await waiting).release();
          await store.locks.request(name, (lock) => lock.signal.aborted);
          const refused = await store.locks.acquire(name, { wait: 0, owner: 'me' });
          await refused.release();
        }
      };
      const measure = async () => {
        for (let i = 0; i < 4; i++) {
          await turn();
          collect();
        }
        const { heapUsed, rss } = process.memoryUsage();
        return { heapUsed, rss };
      };
      // What leaks grows in every round; caches, pools and young generations do not.
      const [heap, resident]: number[][] = [[], []];
      let before = await measure();
      for (let round = 0; round < ROUNDS; round++) {
        await some(ACQUISITIONS / ROUNDS);
        const after = await measure();
        heap?.push(((after.heapUsed - before.heapUsed) * ROUNDS) / ACQUISITIONS);
        resident?.push(((after.rss - before.rss) * ROUNDS) / ACQUISITIONS);
        before = after;
      }
      const least = [Math.min(...(heap ?? [])), Math.min(...(resident ?? []))];
      console.log(
        `least growth per acquisition: heap ${least[0]} bytes, resident ${least[1]} bytes`,
      );
      assert.ok((least[0] ?? 1e9) < 16, `bytes of heap per acquisition, by round: ${heap}`);
      // In a small dose the process itself still grows to its size.
      if (ACQUISITIONS >= 200_000) {
        assert.ok((least[1] ?? 1e9) < 32, `bytes resident per acquisition, by round: ${resident}`);
      }
      assert.equal(store.locks.metrics().waiting, 0);
    });
  },
  (scheme) => scheme === 'memory' || scheme === 'redis',
);
