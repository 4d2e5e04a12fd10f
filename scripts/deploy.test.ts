import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { Command } from 'commander'
import { parse, parseAllDocuments } from 'yaml'
import { hookloop } from '../hookloop/src/cli/cli.fixture.ts'
import { command } from '../hookloop/src/cli/commands/worker.ts'
import { providers } from '../hookloop/src/models/providers.ts'
import { workerHealth } from '../hookloop/src/workers/worker-health.ts'

// Containers cannot be started in these tests, so every command, port, path and variable of the manifests is compared with
// the programs that they start.

const folder = 'examples/deploy'
const read = (file: string): string => readFileSync(join(folder, file), 'utf8')

type Flags = { readonly healthPort?: number; readonly address?: string; readonly postgres?: unknown }
type Container = {
  readonly args?: readonly string[]
  readonly command?: readonly string[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly env: readonly {
    readonly name: string
    readonly valueFrom?: { secretKeyRef: { name: string; key: string } }
  }[]
} & { readonly [K in 'livenessProbe' | 'readinessProbe' | 'startupProbe']?: Probe }
type Probe = { readonly httpGet?: { readonly path: string; readonly port: string } }
type Pod = { readonly terminationGracePeriodSeconds?: number; readonly containers: readonly [Container] }
type Resource = {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly replicas?: number
    readonly maxUnavailable?: number
    readonly selector: { readonly matchLabels?: object; readonly app?: string }
    readonly template: { readonly metadata: { readonly labels: object }; readonly spec: Pod }
    readonly ports: readonly { readonly targetPort: string }[]
  }
}
type Service = {
  readonly command?: readonly string[]
  readonly entrypoint?: readonly string[]
  readonly environment?: { readonly [name: string]: string }
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly ports?: readonly string[]
  readonly depends_on?: object
  readonly deploy?: { readonly replicas: number }
  readonly stop_grace_period?: string
}

/** The options of a command line of `hookloop worker`. Throws for one that the command does not have. */
function workerFlags([name, ...args]: readonly string[]): Flags {
  assert.equal(name, 'worker')
  const program = command.configure(new Command().exitOverride().configureOutput({ writeErr: () => undefined }))
  program.parse(args, { from: 'user' })
  const [files] = program.processedArgs as [readonly string[]]
  assert.ok(files.length > 0 && files.every((file) => existsSync(join(folder, file))))
  return program.opts<Flags>()
}

/** The status of a path of the health checks. */
function statusOf(path: string): Promise<number> {
  const ready = { running: 0, isDraining: false, check: async () => undefined, close: async () => undefined }
  const { promise, resolve } = Promise.withResolvers<number>()
  const response = { writeHead: (status: number) => (resolve(status), response), end: () => undefined }
  const listener = workerHealth(ready)
  setImmediate(() => listener({ url: path, method: 'GET' } as IncomingMessage, response as unknown as ServerResponse))
  return promise
}

const keys = providers.flatMap((provider) => provider.keys)

/** The variables that the command knows by its help, and those of model providers. */
async function unknownToWorkers(names: readonly string[]): Promise<readonly string[]> {
  const { stdout } = await hookloop(['worker', '--help'])
  return names.filter((name) => !stdout.includes(name) && !keys.includes(name))
}

function unknownToServer(names: readonly string[]): readonly string[] {
  return names.filter((name) => !read('server.ts').includes(`process.env['${name}']`))
}

suite('the Kubernetes manifest', () => {
  const resources = parseAllDocuments(read('k8s.yaml')).map((document) => {
    assert.deepEqual(document.errors, [])
    return document.toJS() as Resource
  })
  const deployments = resources.filter(({ kind }) => kind === 'Deployment')
  const podOf = (name: string): Pod => deployments.find(({ metadata }) => metadata.name === name)!.spec.template.spec
  const worker = podOf('hookloop-worker').containers[0]
  const web = podOf('hookloop-web').containers[0]
  const names = ({ env }: Container): readonly string[] => env.map(({ name }) => name)

  test('starts workers with options and variables that the command has', async () => {
    const { healthPort, postgres } = workerFlags(worker.args!)
    assert.equal(postgres, true) // the address is in a variable, not in the list of processes
    assert.deepEqual(worker.ports, [{ name: 'health', containerPort: healthPort }])
    assert.deepEqual(await unknownToWorkers(names(worker)), [])
    assert.ok(names(worker).includes('DATABASE_URL'))
  })

  test('asks the health checks of workers for paths that exist, and gives them time to drain', async () => {
    const { livenessProbe, readinessProbe, startupProbe } = worker
    const probes = [livenessProbe, readinessProbe, startupProbe].map((probe) => probe!.httpGet!)
    assert.deepEqual(
      probes.map(({ path }) => path),
      ['/healthz', '/readyz', '/healthz'],
    )
    for (const { path, port } of probes) assert.deepEqual([await statusOf(path), port], [200, 'health'])
    assert.equal(await statusOf('/other'), 404)
    assert.ok(podOf('hookloop-worker').terminationGracePeriodSeconds! >= 60)
  })

  test('starts a web server that exists, and its service selects it', () => {
    assert.ok(existsSync(join(folder, web.command![1]!)))
    assert.deepEqual(unknownToServer(names(web)), [])
    const service = resources.find(({ kind }) => kind === 'Service')!
    const { labels } = deployments.find(({ metadata }) => metadata.name === 'hookloop-web')!.spec.template.metadata
    assert.deepEqual([service.spec.selector, service.spec.ports[0]!.targetPort], [labels, web.ports[0]!.name])
    for (const { spec } of deployments) assert.deepEqual(spec.selector.matchLabels, spec.template.metadata.labels)
  })

  test('lets nodes be drained one pod of a deployment at a time', () => {
    const budgets = resources.filter(({ kind }) => kind === 'PodDisruptionBudget')
    assert.deepEqual(
      budgets.map(({ spec }) => [spec.selector.matchLabels, spec.maxUnavailable]),
      deployments.map(({ spec }) => [spec.selector.matchLabels, 1]),
    )
    for (const { spec } of deployments) assert.ok(spec.replicas! > 1)
  })

  test('takes secrets from the secret that its first lines create', () => {
    const refs = [worker, web].flatMap(({ env }) => env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? []))
    const [, secret, rest] = /create secret generic (\S+) (.*)/.exec(read('k8s.yaml'))!
    for (const { name, key } of refs) {
      assert.equal(name, secret)
      assert.ok(rest!.includes(`--from-literal=${key}=`), key)
    }
    assert.equal(refs.length, 3)
  })
})

suite('the compose file', () => {
  const { services, volumes } = parse(read('compose.yaml')) as {
    readonly services: { readonly [name: string]: Service }
    readonly volumes: object
  }
  const { worker, web } = services as { readonly worker: Service; readonly web: Service }

  test('starts three workers with options and variables that the command has, reachable under their address', async () => {
    const flags = workerFlags(worker.command!)
    const { hostname, port } = new URL(flags.address!)
    assert.deepEqual([hostname, port, worker.deploy!.replicas], ['worker', '9080', 3])
    const { stdout } = await hookloop(['worker', '--help'])
    assert.match(stdout, /--port <number>\s+port that Restate calls \(default: 9080\)/)
    assert.deepEqual(await unknownToWorkers(Object.keys(worker.environment!)), [])
    const [, path] = /http:\/\/localhost:8081(\/\w+)/.exec(worker.healthcheck!.test.at(-1)!)!
    assert.deepEqual([await statusOf(path!), flags.healthPort], [200, 8081])
  })

  test('starts a web server that exists, with variables that it reads', () => {
    assert.ok(existsSync(join(folder, web.entrypoint![1]!)))
    assert.deepEqual(unknownToServer(Object.keys(web.environment!)), [])
    assert.ok(web.ports![0]!.endsWith(`:${web.environment!['PORT']}`))
  })

  test('names only services and volumes that it has', () => {
    const all = Object.values(services)
    const named = all.flatMap((service) => Object.keys(service.depends_on ?? {}))
    const hosts = [...read('compose.yaml').matchAll(/(?:http:\/\/|@)([a-z]+):\d+/g)].map(([, host]) => host!)
    for (const name of [...named, ...hosts]) assert.ok(name in services || name === 'localhost', name)
    assert.deepEqual(Object.keys(volumes), ['postgres', 'restate'])
  })
})

test('the Dockerfile starts a worker by default, and runs as a user without rights', () => {
  const text = read('Dockerfile')
  const [, entry] = /^ENTRYPOINT (.*)$/m.exec(text)!
  const [, given] = /^CMD (.*)$/m.exec(text)!
  assert.deepEqual(JSON.parse(entry!), ['node_modules/.bin/hookloop'])
  assert.equal(workerFlags(JSON.parse(given!) as readonly string[]).healthPort, 8081)
  assert.match(text, /^USER node$/m)
})
