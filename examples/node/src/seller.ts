// One of several sellers, which may be written in any language: sells from the stock in a folder, each
// sale under the lock, until nothing is left. `make demo WITH=node` lets it sell beside others.
//
//   node seller.js URL LOCK FOLDER NAME
import { connect } from 'fencelock';
import { Ledger } from './ledger.js';

async function main(url: string, lock: string, folder: string, name: string): Promise<void> {
  await using locks = await connect(url, { label: name });
  const ledger = new Ledger(folder);
  let left: number | undefined;
  do {
    left = await locks.request(lock, (held) => ledger.sell(name, held.token));
  } while (left !== undefined);
}

const [url, lock, folder, name] = process.argv.slice(2);
if (url === undefined || lock === undefined || folder === undefined || name === undefined) {
  console.error('usage: node seller.js URL LOCK FOLDER NAME');
  process.exitCode = 2;
} else {
  void main(url, lock, folder, name);
}
