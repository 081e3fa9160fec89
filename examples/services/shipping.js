// The third service: re-enters the lock by the ticket that it is given, and tells the carrier.
//
//   node shipping.js STORE URL-OF-THE-CARRIER    says on which address it listens
const { createServer } = require('node:http');
const { connect, FencelockError, NotHeldError } = require('fencelock');

async function ship(locks, carrier, path, ticket) {
  const hold = await locks.attach(ticket);
  try {
    const answer = await fetch(carrier + path, {
      method: 'POST',
      headers: { 'X-Lock-Ticket': hold.ticket() },
    });
    return { status: answer.ok ? 200 : 502, text: `shipping ${hold.token}\n` };
  } finally {
    await hold.release();
  }
}

function failed(error) {
  if (error instanceof NotHeldError) {
    return { status: 409, text: 'the request with this ticket is over\n' };
  }
  const status = error instanceof FencelockError && error.retryable ? 503 : 500;
  return { status, text: `${error.message}\n` };
}

async function main(store, carrier) {
  const locks = await connect(store, { label: 'shipping' });
  const server = createServer(async (request, response) => {
    const ticket = request.headers['x-lock-ticket'] ?? '';
    const { status, text } = await ship(locks, carrier, request.url, ticket).catch(failed);
    response.writeHead(status).end(text);
  });
  server.listen(0, '127.0.0.1', () => {
    console.log(`http://127.0.0.1:${server.address().port}`);
  });
}

main(...process.argv.slice(2));
