export { summarization, type SummarizationOptions } from './summarization.ts'
