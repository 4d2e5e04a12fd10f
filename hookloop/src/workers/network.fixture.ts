// A network between a worker and its database, or between Restate and its workers, on loopback, to be cut in two ways.
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

type Link = { readonly near: Socket; readonly far: Socket }

export class Network {
  readonly #server: Server
  readonly #links = new Set<Link>()
  #isSilent = false

  private constructor(server: Server) {
    this.#server = server
  }

  /** Starts to forward connections to a socket, or to a port of this machine. */
  static async to(target: string | number): Promise<Network> {
    const place = typeof target === 'string' ? { path: target } : { port: target, host: '127.0.0.1' }
    const server = createServer({ allowHalfOpen: true })
    const network = new Network(server)
    server.on('connection', (near) => network.#forward({ near, far: connect({ ...place, allowHalfOpen: true }) }))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return network
  }

  get host(): string {
    const { port } = this.#server.address() as { readonly port: number }
    return `127.0.0.1:${port}`
  }

  get connectionString(): string {
    return `postgres://hookloop@${this.host}/postgres`
  }

  /** The number of connections that are open. */
  get connections(): number {
    return this.#links.size
  }

  /** Resets every connection. New ones are possible. */
  reset(): void {
    for (const { near, far } of this.#links) {
      // Node cannot reset a connection that waits to be closed: its handle would stay, and the process would never end.
      if (near.writableEnded) near.destroy()
      else near.resetAndDestroy()
      far.destroy()
    }
  }

  /** From now on nothing arrives, and no side learns of it. */
  silence(): void {
    this.#isSilent = true
    for (const link of this.#links) part(link)
  }

  /** What was sent in the meantime arrives now. */
  heal(): void {
    this.#isSilent = false
    for (const link of this.#links) join(link)
  }

  /** New connections work again. The old ones stay silent, as behind a firewall that has forgotten them. */
  replace(): void {
    this.#isSilent = false
  }

  close(): void {
    this.#server.close()
    for (const { near, far } of this.#links) {
      near.destroy()
      far.destroy()
    }
  }

  #forward(link: Link): void {
    this.#links.add(link)
    const end = (): void => {
      this.#links.delete(link)
      link.near.destroy()
      link.far.destroy()
    }
    for (const socket of [link.near, link.far]) socket.on('error', end).on('close', end)
    if (this.#isSilent) part(link)
    else join(link)
  }
}

function join({ near, far }: Link): void {
  near.pipe(far)
  far.pipe(near)
}

function part({ near, far }: Link): void {
  near.unpipe(far).pause()
  far.unpipe(near).pause()
}
