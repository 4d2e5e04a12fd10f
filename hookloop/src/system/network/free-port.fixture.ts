import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ports that the system gives to outgoing connections: 32,768 and more on Linux, 49,152 on other systems. */
const [FIRST, COUNT] = [12_000, 20_000]

/**
 * A port that nothing listens on, for a server that may be started again. A client that asks for a server that is down can get the
 * port of the server for its own end, and be connected to itself, unless the port is one that the system gives to no client.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const server = createServer()
    const isFree = once(server, 'listening').then(
      () => true,
      () => false,
    )
    const port = FIRST + Math.floor(Math.random() * COUNT)
    server.listen(port, '127.0.0.1')
    if (!(await isFree)) continue
    await new Promise((resolve) => server.close(resolve))
    return port
  }
}
