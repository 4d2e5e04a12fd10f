// A second model judges the final answer before it counts, and returns it at most twice with what is wrong.
// An answer that was not approved, or could not be judged, does not complete the run.
import { createAgent, explain, getCritique, selfCritique } from 'hookloop'
import { scriptedModel, type ScriptedTurn } from 'hookloop/testing'

const verdict = (word: string, summary: string, ...suggestions: readonly string[]): ScriptedTurn => ({
  toolCalls: [{ name: 'final_answer', args: { verdict: word, summary, weaknesses: [], suggestions } }],
})

async function answer(title: string, critic: readonly ScriptedTurn[]) {
  const model = scriptedModel([
    'The sky is blue.',
    'The sky is blue because air scatters blue light more than red.',
    'The sky is blue because air scatters light, blue most of all; at sunset only red is left.',
  ])
  const agent = createAgent({ model, use: [selfCritique({ model: scriptedModel(critic, { modelId: 'critic' }) })] })
  const run = await agent.run('Why is the sky blue, and why not at sunset?')
  const { rounds, critique, failure } = getCritique(run.state)!
  console.log(`\n${title}: ${run.status}${run.status === 'stopped' ? ` (${run.reason})` : ''} after ${rounds} rounds`)
  console.log(`  ${run.text}`)
  console.log(`  critic: ${critique?.summary ?? failure}`)
  return run
}

const good = await answer('good in the end', [
  verdict('revise', 'It does not say why.', 'Say what air does to light.'),
  verdict('revise', 'The sunset is missing.', 'Say why it is red then.'),
  verdict('approve', 'Both questions are answered.'),
])
await answer('never good enough', [
  verdict('revise', 'Too short.'),
  verdict('revise', 'Still too short.'),
  verdict('revise', 'Hopelessly short.'),
])
await answer('given up', [verdict('give_up', 'The question is too vague to answer.')])
await answer('critic not available', [{ error: 'the critic is down' }])

console.log(`\n${explain(good)}`)
