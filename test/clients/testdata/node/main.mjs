// node main.mjs FOLDER-OF-THE-HELPER redis|ioredis FOLDER-OF-THE-PACKAGES HOST:PORT MODE …
import { createRequire } from 'node:module';

const [, , helper, client, packages, addr, mode, ...rest] = process.argv;
const changed = await import(`${helper}/changed.mjs`);
const load = createRequire(`${packages}/`);
const [host, port] = addr.split(':');

let redis;
if (client === 'ioredis') {
  redis = new (load('ioredis'))({ host, port, maxRetriesPerRequest: 0 });
} else {
  redis = load('redis').createClient({ url: `redis://${addr}` });
}
redis.on('error', () => {}); // each call has its own error
if (client !== 'ioredis') {
  await redis.connect();
}

const save = (id, fields) => changed.save(redis, `user:${id}`, fields, 'changed:user', id);

async function attempt(call) {
  try {
    await call();
    console.log('ok');
  } catch (e) {
    console.log('error', e.message);
  }
}

if (mode === 'each') {
  await save('ä 1', { n: 7 });
  await changed.remove(redis, 'user:2', 'changed:user', '2');
  await changed.count(redis, 'hits:home', 2, 'changed:hits', 'home');
  await changed.countField(redis, 'views', 16, '123456789', 3);
  await changed.change(redis, 'changed:board', ['a', 'b'], (send) => send('ZADD', 'board', 1, 'a', 2, 'b'), { scored: true });
} else if (mode === 'work') {
  const [worker, n] = rest.map(Number);
  for (let i = 0; i < n; i++) {
    const id = worker * 1000 + (i % 50);
    if (i % 7 === 6) {
      await changed.remove(redis, `user:${id}`, 'changed:user', id);
    } else {
      await save(id, { n: i });
    }
    const page = i % 10;
    await changed.count(redis, `hits:${page}`, 1, 'changed:hits', page);
    await changed.countField(redis, 'views', 16, page, 1);
    console.log(i);
  }
} else if (mode === 'lost') {
  await attempt(() => changed.count(redis, 'hits:lost', 1, 'changed:hits', 'lost'));
} else if (mode === 'lost-field') {
  await attempt(() => changed.countField(redis, 'views', 1, 'lost', 1));
} else if (mode === 'refused') {
  await attempt(() => save('1', { n: 1 }));
  await changed.countField(redis, 'views', 16, '1', 1); // the connection is fit for more
} else if (mode === 'null') {
  await attempt(() => save('1', { n: null }));
}
process.exit(0);
