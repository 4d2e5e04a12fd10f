import { useLayoutEffect, useRef } from 'preact/hooks'

const TYPING = 'input:not([type=checkbox]), textarea, select, dialog'
/** Where keys that move already mean something else. */
const MOVING = 'a, button, summary, .side, .virtual:not(#matrix)'

/** Calls back for a key that is pressed outside of text fields and dialogs, without Ctrl, Alt or Meta. */
export function useKeys(keys: { readonly [key: string]: () => void }): void {
  const latest = useRef(keys)
  latest.current = keys
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const { target, key } = event
      const isIn = (place: string): boolean => target instanceof Element && target.closest(place) !== null
      if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || isIn(TYPING)) return
      if (/^(Arrow|Page|Home|End|Enter)/.test(key) && isIn(MOVING)) return
      if (!Object.hasOwn(latest.current, key)) return
      event.preventDefault()
      latest.current[key]!()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}
