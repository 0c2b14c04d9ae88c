'use strict'
// The anchor of bench/feed.py: npm's hypercore, doing the same work on the same bodies. It takes the commands of
// bench/harness/feed_side.py, one JSON object a line:
//
//   version                                     → hypercore, node
//   append   folder, bodies, count, batch, durable → blocks, seconds
//   read     folder, how, seqs                  → blocks, seconds; both ways are a get of each
//   serve    folder                             → offer; then replicates to the one peer that connects
//   receive  folder, offer                      → blocks, seconds
//   idle                                        → nothing, when what came before is done

const fs = require('fs')
const net = require('net')
const readline = require('readline')
const Hypercore = require('hypercore')

const BODY_SIZE = 150

const now = () => Number(process.hrtime.bigint()) / 1e9
const say = (answer) => process.stdout.write(JSON.stringify(answer) + '\n')

async function idle () {
  return {}
}

async function version () {
  return { hypercore: require('hypercore/package.json').version, node: process.version }
}

async function open (folder, key) {
  const core = new Hypercore(folder, key)
  await core.ready()
  return core
}

// An append ends with a write to RocksDB's log, which nobody syncs. `durable` adds the only way to the disk that there is
// from JavaScript: the memtable is flushed into a table file, which RocksDB does sync.
async function append ({ folder, bodies, count, batch, durable }) {
  const pool = fs.readFileSync(bodies)
  const batches = []
  for (let at = 0; at < count; at += batch) {
    const body = (_, i) => pool.subarray((at + i) * BODY_SIZE, (at + i + 1) * BODY_SIZE)
    batches.push(Array.from({ length: Math.min(batch, count - at) }, body))
  }
  const core = await open(folder)
  const db = core.state.storage.store.db
  const start = now()
  for (const some of batches) {
    await core.append(some)
    if (durable) await db.flush()
  }
  const seconds = now() - start
  if (core.length !== count) throw new Error(`${core.length} blocks of ${count}`)
  await core.close()
  return { blocks: count, seconds }
}

async function read ({ folder, seqs }) {
  const wanted = JSON.parse(fs.readFileSync(seqs))
  const core = await open(folder)
  const start = now()
  for (const seq of wanted) if ((await core.get(seq, { wait: false })).length !== BODY_SIZE) throw new Error(`block ${seq} is short`)
  const seconds = now() - start
  await core.close()
  return { blocks: wanted.length, seconds }
}

async function serve ({ folder }) {
  const core = await open(folder)
  const server = net.createServer()
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  say({ offer: { port: server.address().port, key: core.key.toString('hex'), count: core.length } })
  const socket = await new Promise((resolve) => server.once('connection', resolve))
  await new Promise((resolve) => replicate(core, socket, false).once('close', resolve))
  await new Promise((resolve) => server.close(resolve))
  await core.close()
}

async function receive ({ folder, offer: { port, key, count } }) {
  const core = await open(folder, Buffer.from(key, 'hex'))
  const start = now()
  const socket = replicate(core, net.connect(port, '127.0.0.1'), true)
  await core.download({ start: 0, end: count }).done()
  const seconds = now() - start
  if (core.contiguousLength !== count) throw new Error(`${core.contiguousLength} blocks of ${count}`)
  socket.destroy()
  await core.close()
  return { blocks: count, seconds }
}

function replicate (core, socket, initiator) {
  const stream = core.replicate(initiator)
  const ignore = () => {} // the other end hangs up when it has everything
  socket.setNoDelay(true)
  socket.on('error', ignore)
  stream.on('error', ignore)
  socket.pipe(stream).pipe(socket)
  return socket
}

async function main () {
  const commands = { idle, version, append, read, serve, receive }
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const command = JSON.parse(line)
    const answer = await commands[command.do](command)
    if (answer) say(answer)
  }
}

main().catch((error) => {
  say({ error: String(error) })
  process.exit(1)
})
