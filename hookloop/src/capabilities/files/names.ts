/**
 * A name as a careless file system might read it: some ignore case, compare composed and decomposed letters as equal,
 * skip characters that cannot be seen, or drop dots and spaces at the end. Rules are compared in this form, so that
 * `.GIT` is `.git`. It is never used to open anything.
 */
export function foldName(name: string): string {
  const folded = isPlain(name)
    ? name.toLowerCase()
    : name
        .normalize('NFKC')
        .replaceAll(/\p{Default_Ignorable_Code_Point}|\p{Cf}/gu, '')
        .toLowerCase()
        .normalize('NFKC')
  return /[. ]$/.test(folded) ? folded.replace(/(?<=[^. ])[. ]+$/, '') : folded
}

/** A name or path as it is shown: as it is, or as a JSON string if it would not be seen as what it is. */
export function showName(name: string): string {
  // Spaces at either end, quotes, and whatever moves the cursor, is invisible or turns the text around.
  return /^$|^\s|\s$|["\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\uFFFD]/u.test(name) ? escaped(name) : name
}

function escaped(name: string): string {
  return JSON.stringify(name).replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/gu, (hidden) =>
    [...hidden.matchAll(/[^]/g)].map(([unit]) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''),
  )
}

function isPlain(name: string): boolean {
  for (let i = 0; i < name.length; i++) if (name.charCodeAt(i) > 126) return false
  return true
}
