import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isTerminalSequence } from './terminal-sequence.ts'

const [ESC, BEL, ST] = ['\u001B', '\u0007', '\u001B\\']

test('bells, titles and notifications are allowed', () => {
  const all = [
    BEL,
    `${ESC}]0;build is done${BEL}`,
    `${ESC}]1;icon${ST}`,
    `${ESC}]2;Gebäude 🏗️ fertig${ST}${BEL}`,
    `${ESC}]9;Build is done${BEL}`,
    `${ESC}]9;4;1;50${ST}`,
    `${ESC}]99;;Hello${ST}`,
    `${ESC}]99;i=1:d=0;Title${ST}${ESC}]99;i=1:p=body;Body; and more${ST}`,
    `${ESC}]777;notify;Title;Body${BEL}`,
  ]
  for (const text of all) assert.ok(isTerminalSequence(text), JSON.stringify(text))
})

test('other sequences are not allowed, also next to allowed ones', () => {
  const all = [
    '',
    'plain',
    `${BEL}plain`,
    `${ESC}]0;never ended`,
    `${ESC}]0;embedded ${ESC}[2J${BEL}`,
    `${ESC}]0;a${ESC}]52;c;aGk=${BEL}`,
    `${ESC}]0;new\nline${BEL}`,
    `${ESC}]0;\u009C\u009B2J${BEL}`,
    `\u009D0;title\u009C`,
    `${ESC}]0;\u202Eelif${BEL}`,
    `${ESC}]0;\uD800${BEL}`,
    `${ESC}]4;1;?${BEL}`,
    `${ESC}]52;c;aGk=${BEL}`,
    `${ESC}]8;;http://example.com${ST}`,
    `${ESC}]1337;File=:AA${BEL}`,
    `${ESC}]00;title${BEL}`,
    `${ESC}]9;6;"macro"${BEL}`,
    `${ESC}]9;7;"program"${BEL}`,
    `${ESC}]9;4;1;50;x${BEL}`,
    `${ESC}]99;i=1:p=?;${ST}`,
    `${ESC}]99;i=1:a=report;Title${ST}`,
    `${ESC}]99;i=1:c=1;Title${ST}`,
    `${ESC}]99;i=1:p=close;${ST}`,
    `${ESC}]99;no payload${ST}`,
    `${ESC}]99;i=1${ST}`,
    `${ESC}]777;precmd${BEL}`,
    `${ESC}]0;${'x'.repeat(5_000)}${BEL}`,
    `${ESC}[2J`,
    `${ESC}c`,
    `${ESC}P$q${ST}`,
    `${ESC}]2;ok${BEL} `,
  ]
  for (const text of all) assert.ok(!isTerminalSequence(text), JSON.stringify(text))
})

test('an allowed text contains no escape except those of known commands', () => {
  const pieces = fc.constantFrom(
    ESC,
    BEL,
    ST,
    ']',
    '0;',
    '9;',
    '4;',
    '99;',
    ';',
    '777;notify;',
    'x',
    '\u009B',
    '[2J',
    '\n',
  )
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
      const text = parts.join('')
      if (!isTerminalSequence(text)) return
      // oxlint-disable-next-line no-control-regex
      const rest = text.replace(/\u001B\](?:0|1|2|9|99|777);[^\u0000-\u001F\u007F-\u009F]*(?:\u0007|\u001B\\)/g, '')
      assert.match(rest, /^\u0007*$/) // oxlint-disable-line no-control-regex
    }),
    { numRuns: 20_000 },
  )
})
