import { tool, type Tool } from '../../core/agent/tool.ts'

const services =
  'github gitlab jira slack calendar mail drive sheets stripe salesforce zendesk postgres s3 kubernetes'.split(' ')
const things: { readonly [thing: string]: string } = {
  issue: 'an issue in the tracker',
  message: 'a message in a channel',
  event: 'an event with guests',
  file: 'a file in a folder',
  invoice: 'an invoice for a customer',
  user: 'a user account',
  table: 'a table of the database',
  comment: 'a comment on an item',
  payment: 'a payment of a customer',
  pod: 'a running container',
}
const verbs: { readonly [verb: string]: string } = {
  create: 'Creates',
  delete: 'Removes',
  list: 'Lists, page by page,',
  update: 'Changes fields of',
}

/** This many tools with realistic names: service, verb, object. */
export function manyTools(count = 500): readonly Tool[] {
  const all = services.flatMap((service) =>
    Object.entries(things).flatMap(([thing, words]) =>
      Object.entries(verbs).map(([verb, does]) =>
        tool({
          name: `${service}_${verb}_${thing}`,
          description: `${does} ${words} on ${service}. Needs the right to do so.`,
          input: {
            type: 'object',
            properties: { [`${thing}_id`]: { type: 'string' }, dry_run: { type: 'boolean' } },
            additionalProperties: false,
          },
          execute: () => `${service} ${verb} ${thing}: done`,
        }),
      ),
    ),
  )
  return all.slice(0, count)
}
