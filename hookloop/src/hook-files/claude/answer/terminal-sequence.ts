// What a hook prints may hold the words of a model or a web page, and a terminal obeys what is written to it: some sequences
// move the cursor, some make it type an answer, some run programs. So only what is known to do none of that is let through.

const MAX_CHARACTERS = 4_096

// One bell, or one command to the terminal with its number and its text, in which nothing can end it early or turn around.
const PIECE =
  // oxlint-disable-next-line no-control-regex
  /\u0007|\u001B\](\d{1,3});([^\u0000-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069]*)(?:\u0007|\u001B\\)/y

const texts: { readonly [number: string]: (text: string) => boolean } = {
  // the name of the icon, of the window, of both
  0: () => true,
  1: () => true,
  2: () => true,
  // A notification. With a number in front it is another command, one of which runs programs; 4 is a progress bar.
  9: (text) => /^4;[0-4](?:;\d{1,3})?$/.test(text) || !/^\d+(?:;|$)/.test(text),
  99: isNotification,
  777: (text) => text.startsWith('notify;'),
}

/** Keys of a notification that are about how it looks. Others close notifications, or have the terminal type reports. */
const looks = /^[defgnostuwi]=[\w+/=.,-]*$/

function isNotification(text: string): boolean {
  const [head] = text.split(';', 1)
  if (head === undefined || head.length === text.length) return false
  const fields = head.split(':').filter((field) => field !== '')
  return fields.every((field) => looks.test(field) || field === 'p=title' || field === 'p=body')
}

/** Whether a text is made of bells, titles and notifications, and of nothing else whatsoever. */
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
