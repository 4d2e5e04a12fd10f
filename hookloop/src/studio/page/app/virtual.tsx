import type { ComponentChildren, HTMLAttributes } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

const OVERSCAN = 8

export type Scroller = {
  /** Scrolls just as far as needed to show a row. */
  show(index: number): void
  readonly isAtEnd: () => boolean
}

/** A list of rows of the same height, of which only the visible ones are in the document. */
export function Virtual(props: {
  readonly total: number
  readonly rowHeight: number
  readonly render: (index: number) => ComponentChildren
  /** Stays at the top. */
  readonly header?: ComponentChildren
  /** Attributes of the element that scrolls. */
  readonly attributes?: HTMLAttributes<HTMLDivElement>
  readonly control?: { current: Scroller | null }
  readonly onWindow?: (from: number, to: number) => void
  /** Starts at the end. If the end is visible, it stays so while rows are added. */
  readonly startAtEnd?: boolean
}) {
  const { total, rowHeight } = props
  const scroller = useRef<HTMLDivElement>(null)
  const body = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 0 })
  const wasAtEnd = useRef(props.startAtEnd === true)

  const measure = (): void => {
    const box = scroller.current
    if (box === null) return
    const height = box.clientHeight
    const top = Math.max(0, box.scrollTop)
    wasAtEnd.current = box.scrollHeight - box.scrollTop - height < rowHeight
    setView((now) =>
      Math.floor(now.top / rowHeight) === Math.floor(top / rowHeight) && now.height === height ? now : { top, height },
    )
  }
  // With CSSOM, because the policy of the page forbids style attributes.
  useLayoutEffect(() => {
    body.current!.style.height = `${total * rowHeight}px`
    if (wasAtEnd.current) scroller.current!.scrollTop = scroller.current!.scrollHeight
    measure()
  }, [total, rowHeight])
  useLayoutEffect(() => {
    const box = scroller.current!
    const resized = new ResizeObserver(measure)
    resized.observe(box)
    box.addEventListener('scroll', measure, { passive: true })
    return () => {
      resized.disconnect()
      box.removeEventListener('scroll', measure)
    }
  }, [rowHeight])

  const from = Math.max(0, Math.floor(view.top / rowHeight) - OVERSCAN)
  const to = Math.min(total, Math.ceil((view.top + view.height) / rowHeight) + OVERSCAN)
  useLayoutEffect(() => props.onWindow?.(from, to), [from, to, total])
  if (props.control !== undefined)
    props.control.current = {
      isAtEnd: () => wasAtEnd.current,
      show: (index) => {
        const box = scroller.current
        if (box === null) return
        const visible = box.clientHeight - body.current!.offsetTop
        const top = index * rowHeight
        if (top < box.scrollTop) box.scrollTop = top
        else if (top + rowHeight > box.scrollTop + visible) box.scrollTop = top + rowHeight - visible
        measure()
      },
    }

  return (
    <div {...props.attributes} class="virtual" ref={scroller}>
      {props.header}
      <div class="virtual-body" role="rowgroup" ref={body}>
        {Array.from({ length: Math.max(0, to - from) }, (_, i) => (
          <Placed key={from + i} top={(from + i) * rowHeight}>
            {props.render(from + i)}
          </Placed>
        ))}
      </div>
    </div>
  )
}

function Placed({ top, children }: { readonly top: number; readonly children: ComponentChildren }) {
  return (
    <div class="placed" role="presentation" style={{ transform: `translateY(${top}px)` }}>
      {children}
    </div>
  )
}
