/**
 * Changes that change nothing, so that no test can fail: the file, the change as `npm run mutate` prints it, and why.
 */
export const equivalent: readonly { readonly file: string; readonly change: string; readonly why: string }[] = []
