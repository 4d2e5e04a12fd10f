export type { SchemaEntry, Schemas } from './form.ts'
export {
  getOutputs,
  structuredOutput,
  type StructuredOutput,
  type StructuredOutputOptions,
} from './structured-output.ts'
