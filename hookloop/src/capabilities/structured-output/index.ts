export type { SchemaEntry, Schemas } from './form.ts'
export {
  getOutputs,
  structuredOutput,
  type Outputs,
  type StructuredOutput,
  type StructuredOutputOptions,
} from './structured-output.ts'
