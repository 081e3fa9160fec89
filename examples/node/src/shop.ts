// A web service that sells from a stock which several of its kind share.
//
//   node shop.js [URL OF THE STORE [PORT [FOLDER]]]
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { connect, FencelockError, type LockManager } from 'fencelock';
import { Ledger } from './ledger.js';

/** How long a customer waits for the others, in milliseconds. */
const PATIENCE = 5_000;

/** The service over a store of locks and a ledger. */
export function shop(locks: LockManager, ledger: Ledger): express.Express {
  const app = express();

  app.post('/buy/:buyer', async (request, response) => {
    // A customer who hangs up leaves the queue.
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    try {
      const options = { wait: PATIENCE, signal: gone.signal };
      const left = await locks.request('stock', options, async ({ token }) => {
        // A line of text is to hold it.
        return ledger.sell(encodeURIComponent(request.params.buyer), token);
      });
      if (left === undefined) response.status(409).json({ error: 'sold out' });
      else response.json({ left });
    } catch (error) {
      if (gone.signal.aborted) return;
      if (!(error instanceof FencelockError) || !error.retryable) throw error;
      response.status(503).set('Retry-After', '1').json({ error: error.code });
    }
  });

  return app;
}

/** Serves until the process is told to end; then finishes what it has begun. */
export async function serve(url: string, port: number, folder: string): Promise<Server> {
  const locks = await connect(url, { label: 'shop' });
  const server = createServer(shop(locks, new Ledger(folder))).listen(port, '127.0.0.1');
  await once(server, 'listening');
  process.once('SIGTERM', () => server.close());
  locks.closeOn('SIGTERM', { drain: 10_000 });
  return server;
}

async function main(url: string, port: number, folder: string): Promise<void> {
  await Ledger.create(folder, 20);
  const server = await serve(url, port, folder);
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

if (require.main === module) {
  const [url = 'memory:', port = '0', folder = 'shop'] = process.argv.slice(2);
  void main(url, Number(port), folder);
}
