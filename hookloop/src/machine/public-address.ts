import { lookup, type LookupAddress } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'

/** Addresses that only this machine, or only its network, reaches: what is asked there is asked with their trust. */
const inner = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  inner.addSubnet(network, bits, 'ipv4')
}
for (const [network, bits] of [
  ['::', 128],
  ['::1', 128],
  ['64:ff9b::', 96],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const) {
  inner.addSubnet(network, bits, 'ipv6')
}

export function isInnerAddress(address: string): boolean {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return isInnerAddress(mapped)
  const family = isIP(address)
  return family === 0 || inner.check(address, family === 4 ? 'ipv4' : 'ipv6')
}

/**
 * Finds the address of a host for a connection that must leave this network. It judges the very address that is then
 * connected to: a name that points elsewhere the next time it is asked gains nothing.
 */
export const lookupPublic: LookupFunction = (host, options, done) => {
  lookup(host, { ...options, all: true }, (error, found: readonly LookupAddress[]) => {
    if (error !== null) return done(error, [])
    const refused = found.find(({ address }) => isInnerAddress(address))
    if (refused !== undefined) return done(innerAddress(host, refused.address), [])
    if (options.all === true) return done(null, [...found])
    done(null, found[0]!.address, found[0]!.family)
  })
}

export function innerAddress(host: string, address: string): Error {
  return new Error(`${host} is ${address}, an address of this machine or its network`)
}
