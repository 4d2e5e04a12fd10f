import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { attributes, metricNames, providerName, workerMetricNames } from './conventions.ts'

const providers = {
  'openai.responses': 'openai',
  'anthropic.messages': 'anthropic',
  'google.generative-ai': 'gcp.gemini',
  'google.vertex.chat': 'gcp.vertex_ai',
  'vertex.anthropic.messages': 'gcp.vertex_ai',
  'azure-openai.chat': 'azure.ai.openai',
  'amazon-bedrock': 'aws.bedrock',
  'mistral.chat': 'mistral_ai',
  'xai.chat': 'x_ai',
  'deepseek.chat': 'deepseek',
  'ollama.chat': 'ollama',
  scripted: 'scripted',
}

test('providers have the names of the conventions', () => {
  const named = Object.keys(providers).map((own) => [own, providerName(own)])
  assert.deepEqual(Object.fromEntries(named), providers)
})

test('every attribute and metric is in the docs', () => {
  const page = readFileSync(new URL('../../../site/reference/tracing.md', import.meta.url), 'utf8')
  const names = [...Object.values(attributes), ...Object.values(metricNames), ...Object.values(workerMetricNames)]
  assert.deepEqual(
    names.filter((name) => !page.includes(`\`${name}\``)),
    [],
  )
})
