import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { messageOf } from '../../errors.ts'
import { UsageError } from '../usage-error.ts'

/** Starts a server and resolves with its port. `isTaken` is the error if another program uses the port. */
export async function listen(
  server: Server,
  where: { readonly port: number; readonly host: string | undefined },
  isTaken: string,
): Promise<number> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(where, resolve)
    })
    return (server.address() as AddressInfo).port
  } catch (thrown) {
    throw new UsageError((thrown as NodeJS.ErrnoException).code === 'EADDRINUSE' ? isTaken : messageOf(thrown))
  }
}
