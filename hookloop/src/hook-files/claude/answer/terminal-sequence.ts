// The output of a hook may contain text of a model or a web page, and terminals execute sequences that move the cursor, type
// an answer or run programs. So only sequences that are known to be harmless are allowed.

const MAX_CHARACTERS = 4_096

// One bell, or one operating system command with its number and a text without control or bidi characters.
const PIECE =
  // oxlint-disable-next-line no-control-regex
  /\u0007|\u001B\](\d{1,3});([^\u0000-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069]*)(?:\u0007|\u001B\\)/y

const texts: { readonly [number: string]: (text: string) => boolean } = {
  // titles of the window and the icon
  0: () => true,
  1: () => true,
  2: () => true,
  // A notification. With a number in front it is another command, which may run programs; 4 is a progress bar.
  9: (text) => /^4;[0-4](?:;\d{1,3})?$/.test(text) || !/^\d+(?:;|$)/.test(text),
  99: isNotification,
  777: (text) => text.startsWith('notify;'),
}

/** Keys for the appearance of a notification. Others close notifications, or make the terminal type a report. */
const looks = /^[defgnostuwi]=[\w+/=.,-]*$/

function isNotification(text: string): boolean {
  const [head] = text.split(';', 1)
  if (head === undefined || head.length === text.length) return false
  const fields = head.split(':').filter((field) => field !== '')
  return fields.every((field) => looks.test(field) || field === 'p=title' || field === 'p=body')
}

/** Whether a text consists only of bells, titles and notifications. */
export function isTerminalSequence(text: string): boolean {
  if (text === '' || text.length > MAX_CHARACTERS || !text.isWellFormed()) return false
  PIECE.lastIndex = 0
  for (let end = 0; end < text.length; end = PIECE.lastIndex) {
    const piece = PIECE.exec(text)
    if (piece === null) return false
    const [, number, said = ''] = piece
    if (number !== undefined && !(Object.hasOwn(texts, number) && texts[number]!(said))) return false
  }
  return true
}
