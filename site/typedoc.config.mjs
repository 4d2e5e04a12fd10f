// The API pages: one for each entry point of the package, generated from the comments in its source.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Converter, ReflectionKind } from 'typedoc'

const library = new URL('../hookloop/', import.meta.url)
const { exports: entries } = JSON.parse(readFileSync(new URL('package.json', library), 'utf8'))

/** The name that users import, by the source file behind it. */
const names = new Map(
  Object.entries(entries)
    .filter(([, target]) => target['hookloop-source'] !== undefined)
    .map(([path, target]) => [fileURLToPath(new URL(target['hookloop-source'], library)), `hookloop${path.slice(1)}`]),
)

function nameModulesAfterEntryPoints({ converter }) {
  converter.on(Converter.EVENT_CREATE_DECLARATION, (context, reflection) => {
    if (!reflection.kindOf(ReflectionKind.Module)) return
    const [file] = context.getSymbolFromReflection(reflection)?.declarations ?? []
    reflection.name = names.get(file?.getSourceFile().fileName) ?? reflection.name
  })
}

export default {
  name: 'API',
  entryPoints: [...names.keys()],
  tsconfig: 'tsconfig.typedoc.json',
  plugin: ['typedoc-plugin-markdown', nameModulesAfterEntryPoints],
  out: 'reference/api',
  router: 'module',
  entryFileName: 'index',
  readme: 'none',
  disableSources: true,
  excludeInternal: true,
  excludePrivate: true,
  logLevel: 'Error',
  hideBreadcrumbs: true,
  hidePageHeader: true,
  sanitizeComments: true,
  useCodeBlocks: true,
  parametersFormat: 'table',
  propertiesFormat: 'table',
  typeDeclarationFormat: 'table',
  tableColumnSettings: { hideSources: true, hideInherited: true, hideModifiers: true, hideOverrides: true },
  groupOrder: ['Functions', 'Classes', 'Variables', 'Interfaces', 'Type Aliases', '*'],
}
