// CIDs by npm's multiformats, for tests/core/test_cid.py: node cids.mjs <folder of multiformats> < questions > answers.
// multiformats brings no DAG-CBOR codec, so the few rules of it stand here, apart from the library under test.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const load = (file) => import(pathToFileURL(join(process.argv[2], 'dist', 'src', file)).href)
const { CID } = await load('cid.js')
const { sha256 } = await load('hashes/sha2.js')

const head = (major, count) => {
  const n = BigInt(count)
  const size = n < 24n ? 0 : n < 1n << 8n ? 1 : n < 1n << 16n ? 2 : n < 1n << 32n ? 4 : 8
  if (size === 0) return Buffer.from([(major << 5) | Number(n)])
  const hex = n.toString(16).padStart(size * 2, '0')
  return Buffer.concat([Buffer.from([(major << 5) | (24 + Math.log2(size))]), Buffer.from(hex, 'hex')])
}

const float = (value) => {
  const bytes = Buffer.alloc(9, 0xfb)
  bytes.writeDoubleBE(value, 1)
  return bytes
}

const sized = (major, bytes) => Buffer.concat([head(major, bytes.length), bytes])

const encode = ([type, value]) => {
  switch (type) {
    case 'null': return Buffer.from([0xf6])
    case 'bool': return Buffer.from([value ? 0xf5 : 0xf4])
    case 'int': return BigInt(value) >= 0n ? head(0, value) : head(1, -1n - BigInt(value))
    case 'float': return float(value)
    case 'bytes': return sized(2, Buffer.from(value, 'hex'))
    case 'text': return sized(3, Buffer.from(value, 'utf8'))
    case 'list': return Buffer.concat([head(4, value.length), ...value.map(encode)])
    case 'map': {
      const entries = value.map(([key, item]) => [Buffer.from(key, 'utf8'), encode(item)])
      entries.sort(([a], [b]) => a.length - b.length || Buffer.compare(a, b))
      return Buffer.concat([head(5, entries.length), ...entries.flatMap(([key, item]) => [sized(3, key), item])])
    }
    case 'link': return Buffer.concat([head(6, 42), sized(2, Buffer.concat([Buffer.from([0]), CID.parse(value).bytes]))])
    default: throw new Error(`no type ${type}`)
  }
}

const describe = (cid) => ({ text: cid.toString(), hex: Buffer.from(cid.bytes).toString('hex') })
const name = async (blob, codec) => ({ blob: blob.toString('hex'), ...describe(CID.createV1(codec, await sha256.digest(blob))) })

const { blobs, nodes, texts, own } = JSON.parse(readFileSync(0, 'utf8'))
const answers = {
  blobs: await Promise.all(blobs.map((hex) => name(Buffer.from(hex, 'hex'), 0x55))),
  nodes: await Promise.all(nodes.map((node) => name(encode(node), 0x71))),
  texts: texts.map((text) => ({ ...describe(CID.parse(text)), codec: CID.parse(text).code, version: CID.parse(text).version })),
  // Blobs that Python has not seen before.
  own: await Promise.all(Array.from({ length: own }, (_, n) => name(createHash('sha512').update(`${n}`).digest().subarray(0, n % 65), n % 2 ? 0x55 : 0x71)))
}
process.stdout.write(JSON.stringify(answers))
