import type { Theme } from 'vitepress'
import DefaultTheme from 'vitepress/theme'
import LifecyclePicture from './LifecyclePicture.vue'
import './style.css'

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => void app.component('LifecyclePicture', LifecyclePicture),
} satisfies Theme
