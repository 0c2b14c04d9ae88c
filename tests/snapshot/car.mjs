// An independent reader of CAR files: npm's @ipld/car and @ipld/dag-cbor walk what `export` wrote.
//
//   node car.mjs <folder of node_modules> <CAR file>   → JSON: roots, cids in the order of the file, trees, and what a
//   bundle holds besides

import { createReadStream, readFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [, , modules, file] = process.argv
const load = (name) => {
  const folder = join(modules, name)
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json')))
  return import(pathToFileURL(join(folder, exports['.'].import)))
}

const { CarBlockIterator } = await load('@ipld/car')
const dagCbor = await load('@ipld/dag-cbor')
const hex = (bytes) => Buffer.from(bytes).toString('hex')

const blocks = new Map()
const reader = await CarBlockIterator.fromIterable(createReadStream(file))
const roots = (await reader.getRoots()).map(String)
for await (const { cid, bytes } of reader) {
  if (hex(createHash('sha256').update(bytes).digest()) !== hex(cid.multihash.digest)) throw new Error(`${cid} does not match`)
  if (blocks.has(String(cid))) throw new Error(`${cid} comes twice`)
  if (cid.code === 0x71 && hex(dagCbor.encode(dagCbor.decode(bytes))) !== hex(bytes)) throw new Error(`${cid} is not canonical`)
  blocks.set(String(cid), bytes)
}

const isLink = (value) => value !== null && typeof value === 'object' && value.asCID === value
const node = (cid) => dagCbor.decode(blocks.get(String(cid)))

function content (cid) {
  if (cid.code === 0x55) return Buffer.from(blocks.get(String(cid)))
  const [name, , size, links] = node(cid)
  const parts = []
  for (let at = 0; at < links.length; at += 2) parts.push(content(links[at]))
  const whole = Buffer.concat(parts)
  if (name !== 'content' || whole.length !== Number(size)) throw new Error(`${cid} has another size`)
  return whole
}

function * entries (cid) {
  const [level, items] = node(cid)
  for (let at = 0; at < items.length; at += level === 0 ? 2 : 3) {
    if (level !== 0) yield * entries(items[at + 1])
    else yield [hex(items[at]), hex(isLink(items[at + 1]) ? content(items[at + 1]) : items[at + 1])]
  }
}

function bundle (root) {
  const list = (cid) => {
    const [name, links] = node(cid)
    if (name !== 'list') throw new Error(`${cid} is no list`)
    return links
  }
  const feeds = root.feeds.map(([key, kind, first, length, lists]) => ({
    feed: hex(key), kind, first, length, spans: lists.flatMap(list).map((span) => hex(content(span)))
  }))
  const files = root.files.flatMap(list).map((cid) => [String(cid), hex(content(cid))])
  return { party: hex(root.party), genesis: hex(root.genesis), feeds, files }
}

let root = node(roots[0])
const bundled = root.format === 'antiphon.bundle.v1' ? bundle(root) : null
if (bundled !== null) root = node(root.snapshot)
const trees = {}
for (const name of ['items', 'feeds', 'deaths']) trees[name] = root[name] === null ? [] : [...entries(root[name])]
const fields = { format: root.format, party: hex(root.party), number: Number(root.number), models: root.models }
process.stdout.write(JSON.stringify({ roots, cids: [...blocks.keys()], trees, fields, bundled }))
