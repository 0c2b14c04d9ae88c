'use strict'
// The anchor of bench/live.py: npm's Yjs, doing the same edits. It takes the commands of bench/harness/live_crdt.py, one
// JSON object a line:
//
//   version                            → yjs, node
//   work     edits, kind, count, batch → local and received (seconds), value
//   apply    file, expected            → seconds; the updates are those that pycrdt made

const fs = require('fs')
const readline = require('readline')
const Y = require('yjs')

const OBJECT_ITEMS = 10

const now = () => Number(process.hrtime.bigint()) / 1e9

function version () {
  return { yjs: require('yjs/package.json').version, node: process.version }
}

// How an edit is made, and how the value is read.
function open (doc, kind) {
  if (kind === 'object') {
    const maps = Array.from({ length: OBJECT_ITEMS }, (_, number) => doc.getMap(String(number)))
    return [([item, key, value]) => maps[item].set(key, value), () => maps.map((map) => map.toJSON())]
  }
  if (kind === 'array') {
    const array = doc.getArray('array')
    const splice = ([index, deleted, inserted]) => {
      if (deleted) array.delete(index, deleted)
      if (inserted.length) array.insert(index, inserted)
    }
    return [splice, () => array.toJSON()]
  }
  const text = doc.getText('text')
  const replace = ([position, deleted, inserted]) => {
    if (deleted) text.delete(position, deleted)
    if (inserted) text.insert(position, inserted)
  }
  return [replace, () => text.toString()]
}

const files = new Map()

function load (file) {
  if (!files.has(file)) files.set(file, JSON.parse(fs.readFileSync(file, 'utf8')))
  return files.get(file)
}

function work ({ edits, kind, count, batch }) {
  const some = load(edits)[kind].slice(0, count)
  const doc = new Y.Doc()
  const [act, read] = open(doc, kind)
  const updates = []
  doc.on('update', (update) => updates.push(update))
  let start = now()
  if (batch === 1) {
    for (const edit of some) act(edit)
  } else {
    for (let at = 0; at < some.length; at += batch) {
      doc.transact(() => some.slice(at, at + batch).forEach(act))
    }
  }
  const local = now() - start
  const other = new Y.Doc()
  const [, readOther] = open(other, kind)
  start = now()
  for (const update of updates) Y.applyUpdate(other, update)
  const received = now() - start
  const value = read()
  if (JSON.stringify(readOther()) !== JSON.stringify(value)) throw new Error('the copy differs')
  return { local, received, value }
}

function apply ({ file, expected }) {
  const data = fs.readFileSync(file)
  const updates = []
  for (let at = 0; at < data.length;) {
    const size = data.readUInt32LE(at)
    updates.push(data.subarray(at + 4, at + 4 + size))
    at += 4 + size
  }
  const doc = new Y.Doc()
  const text = doc.getText('text')
  const start = now()
  for (const update of updates) Y.applyUpdate(doc, update)
  const seconds = now() - start
  if (text.toString() !== fs.readFileSync(expected, 'utf8')) throw new Error('the text differs')
  return { process: seconds }
}

const commands = { version, work, apply }

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const { do: name, ...values } = JSON.parse(line)
  let answer
  try {
    answer = commands[name](values)
  } catch (error) {
    answer = { error: String(error) }
  }
  process.stdout.write(JSON.stringify(answer) + '\n')
})
